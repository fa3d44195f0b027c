package isolation

import "context"

// Save stores what was changed since the last commit, and lists those files, relative to the repository's top.
func (w *Workplace) Save(ctx context.Context) ([]string, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.checkout == nil {
		return nil, nil
	}
	return w.checkout.Save(ctx)
}

// Keep stores what a file tool has changed, if that takes little time: only an overlay's changes can be told without looking at all files.
func (w *Workplace) Keep(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout == nil || !w.checkout.Layered() {
		return nil
	}
	_, err := w.checkout.Save(ctx)
	return err
}

// restore is reopen for a session that continues: if its checkout was deleted, it gets another one with its work, which would otherwise be
// merged only after its next write.
func (w *Workplace) restore(ctx context.Context) error {
	if err := w.reopen(ctx); err != nil {
		return err
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout != nil || !w.lost {
		return nil
	}
	w.lost = false
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return err
	}
	if _, kept, err := w.freeBranch(ctx, tip); err != nil || kept == "" {
		return err
	}
	return w.begin(ctx)
}
