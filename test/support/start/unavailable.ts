/**
 * Thrown if a service is not available on this machine. The message says why and what to install.
 */
export class Unavailable extends Error {}
