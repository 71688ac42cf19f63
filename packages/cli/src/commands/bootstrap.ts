import type { Config } from '@gateway/core/config';
import { isPlain } from '@gateway/core/json';
import type { BootstrappedUser } from '@gateway/store/people';
import { command, oneOf, valueFlag, withDatabase, wrongUse } from '../app/gateway-command.js';
import { accountText, serverUrl } from '../output/account-text.js';

export default command({
  description:
    'Prints the user with a generated password, the organisation, and a personal API key for the management API. Password and key ' +
    'are shown only once.',
  examples: [
    'gateway bootstrap --email ada@example.com --first-name Ada --last-name Lovelace',
    'gateway bootstrap --email ada@example.com --format human',
  ],
  flags: {
    email: valueFlag('<value>', 'Email of the user.'),
    'first-name': valueFlag('<value>', 'First name of the user. [default: admin]'),
    'last-name': valueFlag('<value>', 'Last name of the user. [default: admin]'),
    format: valueFlag('json|human', 'Output format. [default: json]'),
  },
  async run({ flags, config, json, log }) {
    const { 'first-name': firstName = 'admin', 'last-name': lastName = 'admin' } = flags;
    const email = flags.email?.trim();
    if (!email) throw wrongUse('an email is required', 'set it with --email=<address>');
    const format = oneOf('--format', flags.format ?? 'json', ['json', 'human']);
    checkPlain('--email', email, 320);
    checkPlain('--first-name', firstName);
    checkPlain('--last-name', lastName);
    const settings = config();
    const { bootstrapUser } = await import('@gateway/store/people');
    const account = await withDatabase(settings, ({ knex }) =>
      bootstrapUser(knex, { email, firstName, lastName }),
    );
    if (format === 'json') json(account);
    else log(nextText(account, settings));
  },
});

/** As the API: a terminal, log or mail program would interpret control characters. */
function checkPlain(flag: string, text: string, most = 100): void {
  if (!isPlain(text)) throw wrongUse(`${flag} contains control characters`, 'remove them');
  if (text.length > most) throw wrongUse(`${flag} is longer than ${most} characters`, 'shorten it');
}

function nextText(account: BootstrappedUser, config: Config): string {
  const url = serverUrl(config);
  const signIn = `sign in to the dashboard, which guides you to a first message:\n\n  ${url}/\n\nOr create a project over the API:`;
  return `${accountText(account)}

Next, with \`gateway server\` and \`gateway agent\` running, ${config.dashboard.enabled ? signIn : 'create a project:'}

  curl -X POST ${url}/api/v1/projects \\
    -H 'Authorization: Bearer ${account.api_key.key}' \\
    -H 'Content-Type: application/json' \\
    -d '{"name": "orders", "type": "outgoing"}'`;
}
