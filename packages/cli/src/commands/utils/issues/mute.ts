import { GatewayError } from '@gateway/core/errors';
import { argument, Flags, GatewayCommand, idOf } from '../../../app/gateway-command.js';

export default class UtilsIssuesMute extends GatewayCommand {
  static override description =
    'A muted issue is still counted but not shown as open, even if the endpoint recovers and fails again.';
  static override examples = [
    '<%= config.bin %> utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef',
    '<%= config.bin %> utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef --off',
  ];
  static override flags = { off: Flags.boolean({ summary: 'Show the issue as open again.' }) };
  static override args = { id: argument('Id of the issue.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsIssuesMute);
    const id = idOf('the argument', args.id);
    const { findIssue, muteIssue } = await import('@gateway/store/counts/issues');
    const issue = await this.withDatabase(flags, async ({ pool }) => {
      const found = await findIssue(pool, id);
      return found && muteIssue(pool, found, !flags.off);
    });
    if (!issue) throw new GatewayError('not_found', { thing: 'issue', id });
    this.log(`the issue is ${issue.state}`);
  }
}
