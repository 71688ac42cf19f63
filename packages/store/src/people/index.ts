export * from './audit-log.js';
export * from './idempotent-requests.js';
export * from './identities.js';
export * from './invitations.js';
export * from './organisations.js';
export * from './password-resets.js';
export * from './passwords.js';
export * from './users.js';
