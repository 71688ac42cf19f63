import { useState } from 'preact/hooks';
import { Button } from '../layout/button.js';

const TOLD_MS = 1_500;

export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [told, setTold] = useState('');
  const tell = (word: string) => {
    setTold(word);
    setTimeout(() => setTold(''), TOLD_MS);
  };
  const copy = () =>
    void copyText(text).then(
      () => tell('Copied'),
      () => tell('Not copied'),
    );
  return (
    <span class="copy">
      <Button kind="quiet" label={`${told || 'Copy'} ${what}`} onPress={copy}>
        {told || 'Copy'}
      </Button>
      <span class="spoken" role="status">
        {told}
      </span>
    </span>
  );
}

/** `navigator.clipboard` exists only on HTTPS and localhost. */
async function copyText(text: string): Promise<void> {
  if ('clipboard' in navigator) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('the browser refused to copy');
}

export function Copyable({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <Copy text={text} what={what} />
    </span>
  );
}
