import type { Config } from '@gateway/core/config';
import type { BootstrappedUser } from '@gateway/store/config';
import { textTable } from './output/table.js';

/** A new user for a person to read: what to keep, and what comes next. */
export function accountText(account: BootstrappedUser, config: Config): string {
  const { user, password, organisation, api_key: key } = account;
  const facts = textTable([
    ['email', user.email],
    ['name', `${user.first_name} ${user.last_name}`],
    ['password', password],
    ['organisation', `${organisation.name} (${organisation.id})`],
    ['API key', key.key],
  ]);
  return `A user was created. Keep the password and the API key now: they are shown this once.

${facts.replaceAll(/^/gm, '  ')}

Next, with \`gateway server\` and \`gateway agent\` running, create a project:

  curl -X POST ${apiUrl(config)}/projects \\
    -H 'Authorization: Bearer ${key.key}' \\
    -H 'Content-Type: application/json' \\
    -d '{"name": "orders", "type": "outgoing"}'`;
}

/** Where the management API is reached by its settings. */
function apiUrl({ host, root_path: rootPath, server: { http } }: Config): string {
  const scheme = http.ssl ? 'https' : 'http';
  return `${scheme}://${host ?? `localhost:${http.port}`}${rootPath}/api/v1`;
}
