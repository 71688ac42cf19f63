import { Args, GatewayCommand, idOf } from '../../app/gateway-command.js';

export default class ShardsMove extends GatewayCommand {
  static override description =
    'The project takes no events for seconds, until the command ends. Agents then copy its earlier events in the background, the newest first: `shards list` shows how ' +
    'far they are. If the command is stopped, an agent goes on with the move. The name of the shard that the project has calls off a move that does not end.';
  static override examples = ['gateway shards move 019ab3c4-5d6e-7f70-9123-456789abcdef big'];
  static override args = {
    project: Args.string({ required: true, ignoreStdin: true, description: 'Id of the project.' }),
    shard: Args.string({ required: true, ignoreStdin: true, description: 'Name of the shard.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShardsMove);
    const { project, shard: to } = args;
    const projectId = idOf('the project', project);
    const { shard: from } = await this.api(flags, async (api) => {
      const before = await api.projects.get(projectId);
      await api.project(projectId).shards.moveProject(to);
      return before;
    });
    if (from === to) this.logToStderr(`the project is on the shard ${to} and stays there`);
    else
      this.log(
        `the project is on the shard ${to} now; agents copy its earlier events from ${from}`,
      );
  }
}
