import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { rootHelp } from './root-help.js';

/** One line of usage instead of every flag twice. */
class GatewayCommandHelp extends CommandHelp {
  protected override defaultUsage(): string {
    return `${super.defaultUsage()} [FLAGS]`;
  }
}

export default class GatewayHelp extends Help {
  protected override CommandHelpClass = GatewayCommandHelp;

  constructor(config: Config, options: Partial<HelpOptions> = {}) {
    super(config, { docopts: false, hideCommandSummaryInDescription: true, ...options });
  }

  protected override showRootHelp(): Promise<void> {
    this.log(rootHelp(this.opts.maxWidth).trimEnd());
    return Promise.resolve();
  }
}
