import {
  command,
  findIn,
  idArgument,
  projectFlag,
  switchFlag,
} from '../../../app/gateway-command.js';

export default command({
  description:
    'A muted issue is still counted but not shown as open, even if the endpoint recovers and fails again.',
  examples: [
    'gateway utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils issues mute 019ab3c4-5d6e-7f70-9123-456789abcdef --off',
  ],
  flags: {
    off: switchFlag('Show the issue as open again.'),
    ...projectFlag,
  },
  args: idArgument('Id of the issue.'),
  async run({ args: { id }, flags, api, log }) {
    const { state } = await api(async (all) => {
      const { issues } = (await findIn(all, flags, (it) => it.issues.get(id))).api;
      return flags.off ? issues.unmute(id) : issues.mute(id);
    });
    log(`the issue is ${state}`);
  },
});
