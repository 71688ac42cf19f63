import { Checkbox } from '../../components/form/field.js';

export function KeepMessages({
  isOn,
  onChange,
}: {
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}) {
  return (
    <Checkbox
      label="Keep messages"
      hint="With each event, what the function got is stored, up to 64 KB. It also holds what the function leaves out."
      isOn={isOn}
      onChange={onChange}
    />
  );
}
