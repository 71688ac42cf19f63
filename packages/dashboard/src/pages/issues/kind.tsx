import type { Issue } from '@gateway/client';
import { Badge } from '../../components/index.js';
import { own } from '../../format/text.js';

const KINDS: Readonly<Record<string, string>> = {
  dns: 'DNS lookup failed',
  connect: 'Connection failed',
  refused_address: 'Address not allowed',
  proxy: 'Proxy failed',
  tls: 'TLS failed',
  timeout: 'Timed out',
  reset: 'Connection closed',
  protocol: 'Invalid HTTP',
  unsendable: 'Invalid request',
  function: 'Function failed',
  other: 'Other errors',
};

/** Such as `HTTP 503` or `Timed out`. */
export function kindWords(kind: string): string {
  return own(KINDS, kind) ?? kind.replace(/^http_/, 'HTTP ');
}

const TONES = { open: 'bad', muted: 'plain', resolved: 'ok' } as const;

export function StateBadge({ state }: Pick<Issue, 'state'>) {
  return <Badge status={state} tone={TONES[state]} />;
}
