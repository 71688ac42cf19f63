import { StateEffect, StateField, type Text } from '@codemirror/state';
import { Decoration, EditorView, WidgetType, type DecorationSet } from '@codemirror/view';

export interface Mistake {
  /** Starts at 1. */
  readonly line: number;
  readonly sentence: string;
}

export const showMistake = StateEffect.define<Mistake | undefined>();

class Sentence extends WidgetType {
  constructor(readonly sentence: string) {
    super();
  }

  override eq(other: Sentence): boolean {
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
  const below = Decoration.widget({ widget: new Sentence(mistake.sentence), side: 1, block: true });
  return Decoration.set([badLine.range(from), below.range(to)]);
}

/**
 * Colours the line of the mistake and shows the sentence below it; both move with the text until
 * the next mistake.
 */
export const mistakeField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, { changes, effects, state }) {
    const told = effects.find((effect) => effect.is(showMistake));
    return told ? decorationsOf(told.value, state.doc) : shown.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});
