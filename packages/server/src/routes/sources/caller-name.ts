import type { Caller } from '../../auth/process-credentials.js';

export function nameOf(caller: Caller): string {
  switch (caller.type) {
    case 'personal':
    case 'session':
      return `user ${caller.user_id}`;
    case 'project':
    case 'portal':
      return `API key gw_${caller.mask}_…`;
    case 'process':
      return 'a credential of the server';
  }
}
