// Values that several parts of the page show, and who wants to know when they change.

/** @param {object} values at the beginning */
export function makeStore(values) {
  const listeners = [];
  const store = {
    ...values,
    /** Change values, then call each listener of a changed one once. */
    set(changes) {
      const changed = Object.keys(changes).filter((name) => store[name] !== changes[name]);
      Object.assign(store, changes);
      for (const [names, listener] of listeners) {
        if (names.some((name) => changed.includes(name))) listener(store);
      }
    },
    /** Call `listener` now, and whenever one of these values has changed. */
    on(names, listener) {
      listeners.push([names, listener]);
      listener(store);
    },
  };
  return store;
}
