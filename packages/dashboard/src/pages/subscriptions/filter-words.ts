import type { Subscription } from '@gateway/client';

/** The paths that a filter tests, such as `total, customer.tier, header x-region`. */
export function filterWords({ headers, body }: Subscription['filter_config']['filter']): string {
  const names = [...Object.keys(body), ...Object.keys(headers).map((name) => `header ${name}`)];
  return names.length === 0 ? 'none' : names.join(', ');
}
