import type { Config } from '@gateway/core/config';
import { isPlain } from '@gateway/core/json';
import type { BootstrappedUser } from '@gateway/store/people';
import {
  GatewayCommand,
  oneOf,
  valueFlag,
  withDatabase,
  wrongUse,
} from '../app/gateway-command.js';
import { accountText, serverUrl } from '../output/account-text.js';

export default class Bootstrap extends GatewayCommand {
  static override description =
    'Prints the user with a generated password, the organisation, and a personal API key for the management API. Password and key ' +
    'are shown only once.';
  static override examples = [
    'gateway bootstrap --email ada@example.com --first-name Ada --last-name Lovelace',
    'gateway bootstrap --email ada@example.com --format human',
  ];
  static override flags = {
    email: valueFlag('<value>', 'Email of the user.'),
    'first-name': valueFlag('<value>', 'First name of the user. [default: admin]'),
    'last-name': valueFlag('<value>', 'Last name of the user. [default: admin]'),
    format: valueFlag('json|human', 'Output format. [default: json]'),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Bootstrap);
    const {
      'first-name': firstName = 'admin',
      'last-name': lastName = 'admin',
      format = 'json',
    } = flags;
    const email = flags.email?.trim();
    if (!email) throw wrongUse('an email is required', 'set it with --email=<address>');
    oneOf('--format', format, ['json', 'human']);
    for (const [flag, name] of Object.entries({
      email,
      'first-name': firstName,
      'last-name': lastName,
    }))
      checkPlain(`--${flag}`, name);
    const { config } = this.resolve(flags);
    const { bootstrapUser } = await import('@gateway/store/people');
    const account = await withDatabase(config, ({ knex }) =>
      bootstrapUser(knex, { email, firstName, lastName }),
    );
    this.log(format === 'json' ? JSON.stringify(account, null, 2) : nextText(account, config));
  }
}

/** As the API: a terminal, log or mail program would interpret control characters. */
function checkPlain(flag: string, text: string): void {
  const most = flag === '--email' ? 320 : 100;
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
