/** A service cannot be had on this machine. The message says why and what to install. */
export class Unavailable extends Error {}
