import type { ApiKeyRow } from '@gateway/store/config';
import type { ProcessCaller } from './process-credentials.js';

/** A stored key, including sessions and portal links, or a process credential. */
export type Caller = ApiKeyRow | ProcessCaller;
