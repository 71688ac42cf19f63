export type { SchemaFrame } from './frame.js';
export { floatText, numberText } from './number-text.js';
export { checkRegistry, type RegisteredSchema } from './registry.js';
export { registryCodec, type SchemaFormat } from './registry-codec.js';
export type { RegistrySettings } from './settings.js';
