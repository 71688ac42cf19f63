import type { EventMessage } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Code } from '../../components/data/code.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Panel } from '../../components/layout/panel.js';
import { Tabs, tabValue } from '../../components/layout/tabs.js';
import { headerLines } from '../../format/json.js';
import { bytes } from '../../format/number.js';
import { projectId } from '../../router/project-path.js';
import { BytesAs, FORMS } from '../preview/bytes-as.js';

export function Message({ eventId, size }: { readonly eventId: string; readonly size: number }) {
  const message = useResource(`${projectId.value} event ${eventId} message`, (signal) =>
    api().events.getMessage(eventId, { signal }),
  );
  return (
    <Panel title={`Message, ${bytes(size)}`}>
      <Loaded resource={message}>{(data) => <Kept message={data} />}</Loaded>
    </Panel>
  );
}

function Kept({ message: { raw, raw_encoding, headers } }: { readonly message: EventMessage }) {
  if (raw === null) return <p>It is not kept: with its headers it has more than 64 KB.</p>;
  return (
    <>
      <Tabs name="message" label="Form of the message" tabs={FORMS} />
      <BytesAs form={tabValue('message', FORMS)} raw={{ raw, raw_encoding }} />
      {Object.keys(headers).length > 0 && (
        <Code isRaw label="Headers of the message" text={headerLines(headers)} />
      )}
    </>
  );
}
