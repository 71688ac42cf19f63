import { linksOf, type Config } from '@gateway/core/config';
import type { BootstrappedUser } from '@gateway/store/people';
import { recordText } from './table.js';

export function accountText({
  user,
  password,
  organisation,
  api_key: { key },
}: BootstrappedUser): string {
  const facts = recordText([
    ['email', user.email],
    ['name', `${user.first_name} ${user.last_name}`],
    ['password', password],
    ['organisation', `${organisation.name} (${organisation.id})`],
    ['API key', key],
  ]);
  return `A user was created. Save the password and the API key now: they are not shown again.

${facts.replaceAll(/^/gm, '  ')}`;
}

/** Without a slash at the end. Throws `host_invalid`. */
export function serverUrl(config: Config): string {
  return linksOf(config).url(config.server.http.port);
}
