import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class PluginsTest extends GatewayCommand {
  static override description =
    'Checks the plugins of a package against the rules that the gateway relies on, with the rig that its manifest names as `conformance`. This runs code of the package. ' +
    'Exits with 1 if a rule is broken. A rule that the rig cannot check is skipped, with the reason.';
  static override examples = [
    '<%= config.bin %> plugins test .',
    '<%= config.bin %> plugins test gateway-source-nats',
    '<%= config.bin %> plugins test . --rule acknowledges-only-after-the-outcome',
  ];
  static override flags = {
    rule: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<name>',
      summary: 'Check this rule only. May be given several times.',
    }),
    json: Flags.boolean({ summary: 'Print JSON instead of lines.' }),
  };
  static override args = {
    plugin: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'Folder of the package, or the name of a plugin that is installed.',
    }),
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
