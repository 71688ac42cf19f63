import { GatewayError } from '@gateway/core/errors';
import { GatewayCommand, argument } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

export default class UtilsSourcesResume extends GatewayCommand {
  static override description =
    'Agents read the source again at once. If its function keeps exceeding its limits, the source is paused again. A changed ' +
    'function resumes its source automatically. `gateway utils sources list --paused` shows ids and reasons.';
  static override examples = [
    '<%= config.bin %> utils sources resume 019ab3c4-5d6e-7f70-9123-456789abcdef',
  ];
  static override args = { id: argument('Id of the source.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsSourcesResume);
    const id = args['id'].toLowerCase();
    const { listSourcesOfProjects, resumeSource } = await import('@gateway/store/config');
    const source = await this.withDatabase(flags, async (database) => {
      const found = (await listSourcesOfProjects(database.pool)).find((it) => it.id === id);
      const resumed = found?.paused_at
        ? await resumeSource(database.knex, found.project_id, id)
        : found;
      if (!found || !resumed) {
        const fix = '`gateway utils sources list` shows the ids; deleted sources are not listed';
        throw new GatewayError('not_found', { thing: 'source', id, fix });
      }
      return found;
    });
    const name = `the source ${escapeLine(source.name)} of the project ${escapeLine(source.project_name)}`;
    if (source.paused_at)
      this.log(
        `resumed ${name}${source.is_disabled ? ', which is disabled and still not read' : ''}`,
      );
    else this.logToStderr(`${name} is not paused; nothing was changed`);
  }
}
