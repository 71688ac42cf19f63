import { Args, GatewayCommand, idOf } from '../../app/gateway-command.js';

export default class ShardsAssign extends GatewayCommand {
  static override description =
    'For a project that has no events yet, or never had any; `shards move` moves any other. ' +
    'A new project gets a shard by itself.';
  static override examples = ['gateway shards assign 019ab3c4-5d6e-7f70-9123-456789abcdef big'];
  static override args = {
    project: Args.string({ required: true, ignoreStdin: true, description: 'Id of the project.' }),
    shard: Args.string({ required: true, ignoreStdin: true, description: 'Name of the shard.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShardsAssign);
    const { project, shard: to } = args;
    const projectId = idOf('the project', project);
    const { shard: from } = await this.api(flags, async (api) => {
      const before = await api.projects.get(projectId);
      await api.project(projectId).shards.moveProject(to, { must_be_empty: true });
      return before;
    });
    if (from === to) this.logToStderr(`the project is on the shard ${to}; nothing was changed`);
    else this.log(`the project is on the shard ${to} now, and was on ${from}`);
  }
}
