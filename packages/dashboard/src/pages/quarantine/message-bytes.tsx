import type { WholeQuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { Checkbox } from '../../components/form/field.js';
import { Panel } from '../../components/layout/panel.js';
import { Tabs, tabValue } from '../../components/layout/tabs.js';
import { bytes } from '../../format/number.js';
import { may } from '../../session/access.js';
import type { Raw } from '../preview/bytes.js';
import { BytesAs, FORMS } from '../preview/bytes-as.js';
import { MessageEditor } from './message-editor.js';

export function MessageBytes({
  message,
  onChange,
}: {
  readonly message: WholeQuarantinedMessage;
  readonly onChange: () => void;
}) {
  const [isOriginal, setOriginal] = useState(false);
  const canEdit = message.status === 'quarantined' && may('member');
  const tabs = [...FORMS, ...(canEdit ? ([['edit', 'Edit and replay']] as const) : [])];
  const shown = tabValue('bytes', tabs);
  const { original_raw: original, original_raw_encoding: encoding = 'utf8' } = message;
  const raw: Raw =
    isOriginal && original !== undefined ? { raw: original, raw_encoding: encoding } : message;
  return (
    <Panel title={`Message, ${bytes(message.raw_bytes)}`}>
      <Tabs name="bytes" label="Form of the message" tabs={tabs} />
      {original !== undefined && shown !== 'edit' && (
        <Checkbox
          label="As it came, before it was edited"
          isOn={isOriginal}
          onChange={setOriginal}
        />
      )}
      <BytesAs form={shown} raw={raw} />
      {shown === 'edit' && <MessageEditor message={message} onChange={onChange} />}
    </Panel>
  );
}
