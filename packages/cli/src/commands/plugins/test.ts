import { Flags, GatewayCommand, argument } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class PluginsTest extends GatewayCommand {
  static override description =
    'Checks the plugins of a package against the conformance rules, with the rig that its manifest names as `conformance`. Runs ' +
    'code of the package. Exits with 1 if a rule is broken. A rule that the rig cannot check is skipped, with the reason.';
  static override examples = [
    'gateway plugins test .',
    'gateway plugins test gateway-source-nats',
    'gateway plugins test . --rule reads-each-message-once',
  ];
  static override flags = {
    rule: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<name>',
      summary: 'Check only this rule. May be repeated.',
    }),
    json: Flags.boolean({ summary: 'Print JSON instead of text.' }),
  };
  static override args = {
    plugin: argument('Folder of the package, or name of an installed plugin.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsTest);
    const { runConformance } = await import('../../plugins/conformance.js');
    const { rule: rules = [], json } = flags;
    const print = (line: string) => (json ? undefined : this.log(line));
    const results = await runConformance(args.plugin, { discovery: installation(), rules, print });
    if (json) this.log(JSON.stringify(results, null, 2));
    if (results.some(({ outcome }) => outcome === 'failed')) this.exit(1);
  }
}
