import { argument, command, jsonOrText, listFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default command({
  description:
    'Checks the plugins of a package against the conformance rules, with the rig that its manifest names as `conformance`. Runs ' +
    'code of the package. Exits with 1 if a rule is broken. A rule that the rig cannot check is skipped, with the reason.',
  examples: [
    'gateway plugins test .',
    'gateway plugins test gateway-source-nats',
    'gateway plugins test . --rule reads-each-message-once',
  ],
  flags: {
    rule: listFlag('<name>', 'Check only this rule. May be repeated.'),
    ...jsonOrText,
  },
  args: { plugin: argument('Folder of the package, or name of an installed plugin.') },
  async run({ args, flags, exit, json, log }) {
    const { runConformance } = await import('../../plugins/conformance.js');
    const { rule: rules = [], json: isJson } = flags;
    const print = (line: string) => (isJson ? undefined : log(line));
    const results = await runConformance(args.plugin, { discovery: installation(), rules, print });
    if (isJson) json(results);
    if (results.some(({ outcome }) => outcome === 'failed')) exit(1);
  },
});
