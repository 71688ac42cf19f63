import {
  command,
  findIn,
  idArgument,
  idFlag,
  jsonFlag,
  projectFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';
import { counted } from '../../output/table.js';

const ENDPOINT = '019ab3c4-5d6e-7f70-9123-456789abcdef';
const KEY = '5f2b0c1e-8d3a-4b6f-9c7e-1a2b3c4d5e6f';

export default command({
  description:
    'A key of an ordered endpoint is parked after a delivery has failed for good; the deliveries behind it wait. Lists the parked keys, the oldest first, ' +
    'or decides about one: --release sends the failed delivery again, --skip gives it up and goes on with the next one, --discard gives up all unfinished ' +
    'deliveries of the key. Does not ask for confirmation.',
  examples: [
    `gateway utils ordered-keys ${ENDPOINT}`,
    `gateway utils ordered-keys ${ENDPOINT} --release ${KEY}`,
    `gateway utils ordered-keys ${ENDPOINT} --discard ${KEY}`,
  ],
  flags: {
    ...jsonFlag,
    release: idFlag('Send the failed delivery of this key again.'),
    skip: idFlag('Give up the first delivery of this key.'),
    discard: idFlag('Give up all unfinished deliveries of this key.'),
    ...projectFlag,
  },
  args: idArgument('Id of the endpoint.'),
  async run({ args: { id }, flags, api, log, note, table }) {
    const { release, skip, discard } = flags;
    const key = release ?? skip ?? discard;
    if ([release, skip, discard].filter(Boolean).length > 1)
      throw wrongUse(
        'only one of --release, --skip and --discard can be given',
        'run the command once for each key',
      );
    const { found, shown } = await api(async (all) => {
      const it = await findIn(all, flags, ({ endpoints }) => endpoints.get(id));
      const { endpoints } = it.api;
      if (key === undefined) return { ...it, shown: (await endpoints.listParkedKeys(id)).content };
      const change = release
        ? endpoints.releaseKey
        : skip
          ? endpoints.skipDelivery
          : endpoints.discardKey;
      return { ...it, shown: [await change(id, key)] };
    });
    const name = `the endpoint ${escapeLine(found.name)}`;
    if (key === undefined || flags.json)
      table(shown, [
        ['KEY', 'uid'],
        ['VALUE', 'value', VALUE_CHARS],
        ['PARKED', 'parked_at'],
        ['DELIVERIES', 'depth'],
        ['FIRST', 'event_delivery_id'],
        ['REASON', 'reason'],
      ]);
    if (key !== undefined) {
      const done = release ? 'released' : skip ? 'skipped a delivery of' : 'discarded';
      if (!flags.json)
        log(
          `${done} the key ${key} of ${name}: ${counted(shown[0]!.depth, 'unfinished delivery', 'unfinished deliveries')} left`,
        );
    } else if (shown.length === 0) note(`No key of ${name} is parked.`);
  },
});

const VALUE_CHARS = 24;
