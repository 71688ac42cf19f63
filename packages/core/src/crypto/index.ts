export { maskOfApiKey, matchesApiKey, newApiKey } from './api-keys.js';
export {
  isBound,
  isSealed,
  keepSecrets,
  maskConnection,
  openConnection,
  sealConnection,
  sealer,
  type Open,
  type SecretPlace,
  type Sealer,
} from './sealing.js';
