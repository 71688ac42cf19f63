import { useEffect, useRef } from 'preact/hooks';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { javascriptLanguage } from '@codemirror/lang-javascript';
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { EditorState, Prec, StateEffect, StateField, type Text } from '@codemirror/state';
import {
  Decoration,
  type DecorationSet,
  EditorView,
  keymap,
  lineNumbers,
  WidgetType,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';

/**
 * In a shadow root, so that its styles are constructed style sheets, which the content security
 * policy allows. Tab moves the focus, as elsewhere; Ctrl+] indents.
 */
export function CodeEditor({
  label,
  value,
  revision,
  onChange,
  mistake,
  isReadOnly = false,
  onRun,
  onSave,
}: {
  label: string;
  value: string;
  /**
   * When this counter changes, `value` is loaded into the editor; until then, the typed text
   * remains.
   */
  revision: number;
  onChange: (value: string) => void;
  mistake: Mistake | undefined;
  isReadOnly?: boolean;
  onRun: () => void;
  onSave: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef({ onChange, onRun, onSave });
  latest.current = { onChange, onRun, onSave };

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const command = (run: 'onRun' | 'onSave') => () => {
      latest.current[run]();
      return true;
    };
    const editor = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          history(),
          bracketMatching(),
          indentOnInput(),
          javascriptLanguage,
          colours,
          theme,
          mistakeField,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorState.readOnly.of(isReadOnly),
          Prec.high(
            keymap.of([
              { key: 'Mod-Enter', run: command('onRun') },
              { key: 'Mod-s', run: command('onSave') },
            ]),
          ),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.domEventHandlers({ beforeinput: replaceSelection }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) latest.current.onChange(state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [revision]);

  useEffect(
    () => view.current?.dispatch({ effects: showMistake.of(mistake) }),
    [mistake?.line, mistake?.sentence],
  );

  return <div ref={host} class="code-editor" />;
}

/**
 * The browser would preserve the look of the selection in style attributes, which the content
 * security policy forbids.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  if (
    event.inputType !== 'insertText' ||
    event.data === null ||
    view.composing ||
    view.state.selection.main.empty
  )
    return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), {
    userEvent: 'input.type',
    scrollIntoView: true,
  });
  return true;
}

const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--accent)' },
    { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--ok)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
    { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
    { tag: tags.function(tags.definition(tags.variableName)), fontWeight: '600' },
    { tag: tags.invalid, color: 'var(--bad)' },
  ]),
);

const theme = EditorView.theme({
  '&': {
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
    borderRadius: 'var(--radius-s)',
    maxHeight: '40rem',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': {
    fontFamily: 'var(--mono)',
    fontSize: 'var(--text-s)',
    lineHeight: '1.6',
    overflow: 'auto',
    minHeight: '22rem',
  },
  '.cm-content': { caretColor: 'var(--text)', padding: '0.5rem 0' },
  '.cm-gutters': {
    backgroundColor: 'var(--surface)',
    color: 'var(--muted)',
    borderRight: '1px solid var(--border)',
  },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'var(--accent-soft)',
  },
  '.cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket': {
    backgroundColor: 'var(--bad-soft)',
  },
  '.cm-bad-line': { backgroundColor: 'var(--bad-soft)' },
  '.cm-mistake': {
    padding: '0.1rem 0.5rem 0.3rem',
    color: 'var(--bad)',
    backgroundColor: 'var(--bad-soft)',
    whiteSpace: 'pre-wrap',
  },
});

interface Mistake {
  /** Counted from 1. */
  readonly line: number;
  readonly sentence: string;
}

const showMistake = StateEffect.define<Mistake | undefined>();

class SentenceWidget extends WidgetType {
  constructor(readonly sentence: string) {
    super();
  }

  override eq(other: SentenceWidget): boolean {
    return other.sentence === this.sentence;
  }

  toDOM(): HTMLElement {
    const element = document.createElement('div');
    element.className = 'cm-mistake';
    element.textContent = this.sentence;
    return element;
  }
}

const badLine = Decoration.line({ class: 'cm-bad-line' });

function decorationsOf(mistake: Mistake | undefined, doc: Text): DecorationSet {
  if (!mistake || mistake.line > doc.lines) return Decoration.none;
  const { from, to } = doc.line(mistake.line);
  const below = Decoration.widget({
    widget: new SentenceWidget(mistake.sentence),
    side: 1,
    block: true,
  });
  return Decoration.set([badLine.range(from), below.range(to)]);
}

/** Line and sentence move with the text until the next mistake is shown. */
const mistakeField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, { changes, effects, state }) {
    const told = effects.find((effect) => effect.is(showMistake));
    return told ? decorationsOf(told.value, state.doc) : shown.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});
