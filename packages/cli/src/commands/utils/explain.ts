import type { OtherRecord } from '@gateway/store/explain';
import {
  Flags,
  GatewayCommand,
  argument,
  idOf,
  withShards,
  wrongUse,
} from '../../app/gateway-command.js';
import { searchShards } from '../../app/stores.js';

export default class UtilsExplain extends GatewayCommand {
  static override description =
    'Finds the event in any project. Shows the rule that routed it, the state and last attempt of each delivery, and for each ' +
    'subscription whether it matches and why not. For a pending event, shows what it waits for. Reads a few rows and changes ' +
    'nothing.';
  static override examples = [
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --json | jq .deliveries',
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --message > message.json',
  ];
  static override flags = {
    json: Flags.boolean({ summary: 'Print JSON instead of text.' }),
    message: Flags.boolean({
      summary: 'Write only the message that the event was created from, as raw bytes.',
    }),
  };
  static override args = {
    id: argument('Id of the event. The header webhook-id has the id of the delivery instead.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsExplain);
    if (flags.json && flags.message)
      throw wrongUse('--message and --json cannot be combined', 'omit one of them');
    const id = idOf('the argument', args.id);
    const [
      { explainEvent, explanationRecord },
      { explanationText, messageNotKept, unknownEvent },
      { findEventMessage },
    ] = await Promise.all([
      import('@gateway/store/explain'),
      import('../../inspect/explanation.js'),
      import('@gateway/store/events'),
    ]);
    const { explanation, message } = await withShards(
      this.resolve(flags).config,
      async (shards) => {
        const others: OtherRecord[] = [];
        const found = await searchShards(shards.all, async ({ planes }) => {
          const explained = await explainEvent(planes, id);
          if ('explanation' in explained) return { planes, ...explained };
          others.push(...explained.meanings);
          return undefined;
        });
        if (!found) throw unknownEvent(id, others);
        const { explanation, planes } = found;
        return {
          explanation,
          message: flags.message
            ? await findEventMessage(planes.data, explanation.event.project_id, id)
            : undefined,
        };
      },
    );
    if (flags.message) {
      if (!message?.raw) throw messageNotKept(id, message?.raw_bytes);
      process.stdout.write(message.raw);
    } else
      this.log(
        flags.json
          ? JSON.stringify(explanationRecord(explanation), null, 2)
          : explanationText(explanation),
      );
  }
}
