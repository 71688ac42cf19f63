import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class PluginsTest extends GatewayCommand {
  static override description =
    'Judges the plugins of a package by the rules that the gateway relies on, with the rig that its manifest names as `conformance`. This runs code of the package. ' +
    'Ends with status 1 when a rule is broken; a rule that the rig cannot show is skipped, with the reason.';
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
      summary: 'Judge this rule alone. May be given several times.',
    }),
    json: Flags.boolean({ summary: 'Print JSON in place of lines.' }),
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
    const { judgePackage } = await import('../../plugins/judge.js');
    const rules = Array.isArray(flags['rule']) ? flags['rule'] : [];
    const json = flags['json'] === true;
    const verdict = await judgePackage(args['plugin'], {
      discovery: installation(),
      rules,
      say: json ? () => undefined : (line) => this.log(line),
    });
    if (json) this.log(JSON.stringify(verdict.results, null, 2));
    if (verdict.failed > 0) this.exit(1);
  }
}
