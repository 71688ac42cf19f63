import type { Event } from '@gateway/client';
import { Badge } from '../../components/data.js';

/** A processed event that reached no endpoint has a badge of its own. */
export function EventBadge({ status, outcome }: Pick<Event, 'status' | 'outcome'>) {
  return status === 'processed' && outcome !== 'routed' ? (
    <Badge status="no recipient" tone="warn" />
  ) : (
    <Badge status={status} />
  );
}
