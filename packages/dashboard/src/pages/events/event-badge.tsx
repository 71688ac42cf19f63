import type { Event } from '@gateway/client';
import { Badge } from '../../components/index.js';

export function EventBadge({ status, outcome }: Pick<Event, 'status' | 'outcome'>) {
  return status === 'processed' && outcome !== 'routed' ? (
    <Badge status="no recipient" tone="warn" />
  ) : (
    <Badge status={status} />
  );
}
