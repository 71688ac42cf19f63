import {
  argument,
  findIn,
  GatewayCommand,
  idOf,
  projectFlag,
  projectIdOf,
} from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

export default class UtilsSourcesResume extends GatewayCommand {
  static override description =
    'Agents read the source again at once. If its function keeps exceeding its limits, the source is paused again. A changed ' +
    'function resumes its source automatically. `gateway utils sources list --paused` shows ids and reasons.';
  static override examples = ['gateway utils sources resume 019ab3c4-5d6e-7f70-9123-456789abcdef'];
  static override flags = projectFlag;
  static override args = { id: argument('Id of the source.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsSourcesResume);
    const id = idOf('the argument', args.id);
    const {
      found: source,
      project,
      resumed,
    } = await this.api(flags, async (api) => {
      const it = await findIn(api, projectIdOf(flags), ({ sources }) => sources.get(id));
      const isPaused = it.found.paused_at !== null;
      return { ...it, resumed: isPaused ? await it.api.sources.resume(id) : undefined };
    });
    const name = `the source ${escapeLine(source.name)} of the project ${escapeLine(project.name)}`;
    if (!resumed) this.logToStderr(`${name} is not paused; nothing was changed`);
    else if (resumed.resumes_at !== null) this.log(`${name} resumes at ${resumed.resumes_at}`);
    else
      this.log(
        `resumed ${name}${source.is_disabled ? ', which is disabled and still not read' : ''}`,
      );
  }
}
