export { maskOfApiKey, matchesApiKey, newApiKey } from './api-keys.js';
export { keepSecrets, maskConnection, openConnection, sealConnection } from './connection-secrets.js';
export { isSealed, sealer, type Sealer } from './sealing.js';
