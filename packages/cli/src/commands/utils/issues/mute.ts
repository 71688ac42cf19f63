import {
  argument,
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  projectFlag,
  projectIdOf,
} from '../../../app/gateway-command.js';

export default class UtilsIssuesMute extends GatewayCommand {
  static override description =
    'A muted issue is still counted but not shown as open, even if the endpoint recovers and fails again.';
  static override examples = [
    'gateway utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef --off',
  ];
  static override flags = {
    off: Flags.boolean({ summary: 'Show the issue as open again.' }),
    ...projectFlag,
  };
  static override args = { id: argument('Id of the issue.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsIssuesMute);
    const id = idOf('the argument', args.id);
    const issue = await this.api(flags, async (api) => {
      const { issues } = (await findIn(api, projectIdOf(flags), (it) => it.issues.get(id))).api;
      return flags.off ? issues.unmute(id) : issues.mute(id);
    });
    this.log(`the issue is ${issue.state}`);
  }
}
