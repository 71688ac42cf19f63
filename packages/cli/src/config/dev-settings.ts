/**
 * Settings of `gateway dev` that flags and environment variables cannot change. Otherwise a variable
 * for a production database would make it migrate that database.
 */
const FIXED =
  /^(encryption_key|root_path|database\..+|kv\..+|server\.(http|auth)\..+|(delivery|source)\.allowed_networks)$/;

/** Whether `gateway dev` itself sets the setting with this key. */
export function isFixed(key: string): boolean {
  return FIXED.test(key);
}
