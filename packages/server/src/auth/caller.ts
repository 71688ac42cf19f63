import type { ApiKeyRow } from '@gateway/store/config';
import type { ProcessCaller } from './process-credentials.js';

/** The sender of a request: a stored API key, also that of a session or a portal link, or a credential of the process. */
export type Caller = ApiKeyRow | ProcessCaller;
