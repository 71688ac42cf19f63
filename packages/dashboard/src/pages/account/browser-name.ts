/** The first match wins: Edge and Opera also name Chrome, and Chrome names Safari. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const;
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
] as const;

/**
 * Names browser and system from the User-Agent header: `Firefox on Linux`. Returns an unknown agent
 * unchanged.
 */
export function browserOf(agent: string): string {
  const find = (names: readonly (readonly [string, string])[]) =>
    names.find(([part]) => agent.includes(part))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (!browser) return agent;
  return system ? `${browser} on ${system}` : browser;
}
