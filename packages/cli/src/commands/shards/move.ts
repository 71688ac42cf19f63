import { Args, GatewayCommand, idOf } from '../../app/gateway-command.js';

export default class ShardsMove extends GatewayCommand {
  static override description =
    'New events go to the shard as soon as the command ends. What the project has on its former shard is delivered from there, and stays readable until ' +
    'retention deletes it. Agents and servers keep running. If the command is stopped, run it again, or an agent ends the move; the name of the shard that the project has calls the move off.';
  static override examples = [
    '<%= config.bin %> shards move 019ab3c4-5d6e-7f70-9123-456789abcdef big',
  ];
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
        `the project is on the shard ${to} now; its earlier events stay on ${from} until retention deletes them`,
      );
  }
}
