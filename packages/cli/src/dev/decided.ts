/**
 * Settings that `gateway dev` decides. Neither a flag nor the environment changes them: a variable that points at production would have production
 * migrated.
 */
const DECIDED = /^(encryption_key|root_path|database\..+|kv\..+|server\.(http|auth)\..+|delivery\.allowed_networks)$/;

export function isDecided(key: string): boolean {
  return DECIDED.test(key);
}
