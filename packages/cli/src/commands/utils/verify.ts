import {
  command,
  durationFlag,
  jsonOrText,
  readInput,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import type { Received } from '../../inspect/verify.js';

const TOLERANCE = '5m';
const PLAIN_HEADER = 'X-Gateway-Signature';

export default command({
  description:
    'Verifies the Standard Webhooks signature of a delivery as its receiver does, and the plain HMAC header if given. Says which ' +
    'signature matches, or which mistake explains why none does. Needs no database. Exits with 1 if a receiver would reject the ' +
    'delivery.',
  examples: [
    'gateway utils verify --secret-file secret.txt --header-file headers.txt --body body.json',
    "gateway utils verify --secret-file secret.txt --id 019ab3c4-5d6e-8f70-9123-456789abcdef --timestamp 1763712000 --signature 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' --body body.json",
    'gateway utils verify --secret-file secret.txt --header-file headers.txt --tolerance 30d < body.json',
  ],
  flags: {
    secret: valueFlag(
      '<value>',
      'Secret of the endpoint. It stays in the shell history: prefer --secret-file.',
    ),
    'secret-file': valueFlag('<path>', 'File with the secret; - for standard input.'),
    id: valueFlag('<value>', 'Value of webhook-id.'),
    timestamp: valueFlag('<seconds>', 'Value of webhook-timestamp.'),
    signature: valueFlag(
      '<value>',
      'Value of webhook-signature: one or more, separated by spaces.',
    ),
    'plain-signature': valueFlag(
      '<value>',
      "Value of the project's plain HMAC header, hex or base64.",
    ),
    'plain-header': valueFlag(
      '<name>',
      `Name of that header in --header-file. [default: ${PLAIN_HEADER}]`,
    ),
    'header-file': valueFlag(
      '<path>',
      'File with the received headers, instead of the values above.',
    ),
    body: valueFlag(
      '<path>',
      'File with the received body, byte for byte; - for standard input. [default: -]',
    ),
    tolerance: durationFlag(`Maximum age of the timestamp. [default: ${TOLERANCE}]`, TOLERANCE),
    ...jsonOrText,
  },
  async run({ flags, exit, json, log }) {
    const { secret, received } = await inputs(flags);
    const { verifyDelivery } = await import('../../inspect/verify.js');
    const { valid, verdicts, problems } = verifyDelivery(received, secret, {
      toleranceMs: flags.tolerance!,
    });
    if (flags.json) json({ valid, signatures: verdicts, problems });
    else {
      for (const { scheme, signature, matches, sentence } of verdicts)
        log(`${matches ? 'matches' : 'differs'}  ${scheme}  ${signature}\n         ${sentence}.`);
      for (const problem of problems) log(`note     ${problem}.`);
      log(
        valid
          ? 'The delivery is authentic.'
          : 'A receiver with this secret would reject the delivery.',
      );
    }
    if (!valid) exit(1);
  },
});

type VerifyFlags = Readonly<
  Record<
    | 'secret'
    | 'secret-file'
    | 'id'
    | 'timestamp'
    | 'signature'
    | 'plain-signature'
    | 'plain-header'
    | 'header-file'
    | 'body',
    string | undefined
  >
>;

async function inputs(flags: VerifyFlags): Promise<{ secret: string; received: Received }> {
  const {
    secret,
    'secret-file': secretFile,
    'header-file': headerFile,
    'plain-header': plainHeader = PLAIN_HEADER,
    body = '-',
  } = flags;
  if ((secret === undefined) === (secretFile === undefined)) {
    throw wrongUse(
      secret === undefined
        ? 'the secret of the endpoint is missing'
        : '--secret and --secret-file were both given',
      'set it with --secret-file (- for standard input) or --secret',
    );
  }
  const files = Object.entries({
    '--secret-file': secretFile,
    '--header-file': headerFile,
    '--body': body,
  });
  const fromStdin = files.flatMap(([name, file]) => (file === '-' ? [name] : []));
  if (fromStdin.length > 1) {
    throw wrongUse(
      `${fromStdin.join(' and ')} cannot both be read from standard input`,
      'put one of them into a file; --body defaults to standard input',
    );
  }
  const headers =
    headerFile === undefined
      ? undefined
      : headersOf((await readInput('--header-file', headerFile)).toString('utf8'));
  const valueOf = (given: string | undefined, header: string) =>
    given?.trim() ?? headers?.get(header.toLowerCase()) ?? '';
  const signature = valueOf(flags.signature, 'webhook-signature');
  const plainSignature = valueOf(flags['plain-signature'], plainHeader);
  if (signature === '' && plainSignature === '') {
    throw wrongUse(
      headers
        ? `${headerFile} has neither webhook-signature nor ${plainHeader}`
        : 'there is no signature to verify',
      'use --signature, --plain-signature, or --header-file with one header per line, such as `webhook-id: 019a…`',
    );
  }
  const signed = {
    id: valueOf(flags.id, 'webhook-id'),
    timestamp: valueOf(flags.timestamp, 'webhook-timestamp'),
  };
  for (const [flag, value] of Object.entries(signed)) {
    if (signature === '' || value !== '') continue;
    throw wrongUse(
      `webhook-${flag} is missing: it is part of what is signed`,
      `use --${flag}, or --header-file with the headers of the delivery`,
    );
  }
  const key = secret ?? (await readInput('--secret-file', secretFile!)).toString('utf8');
  return {
    secret: key,
    received: { ...signed, signature, plainSignature, body: await readInput('--body', body) },
  };
}

/**
 * One `name: value` per line. Keys are in lower case. Ignores the < or > that `curl -v` puts before
 * each line.
 */
function headersOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^[<>]?[ \t]*([\w-]+):[ \t]*(.*?)\s*$/gm)].map(
      ([, name = '', value = '']) => [name.toLowerCase(), value],
    ),
  );
}
