// What happens at each kind of node, in one sentence.

const SENTENCES = {
  pieces:
    "The text is split into pieces of the vocabulary, and each piece is a number: a row of a table.",
  masks:
    "In a batch, shorter sentences are padded, and padding is never read. In the decoder nothing reads the future.",
  choice:
    "A search chooses a piece by these probabilities and reads it at the next position, until it chooses the end.",
  "embedding.tokens":
    "Each piece is a row of a table that was learned; the row is multiplied by √d_model.",
  "embedding.sum": "What tells the places apart is added: the same numbers for every sentence.",
  "layer.in": "The layer gets what the layer before it computed.",
  "layer.out": "The layer hands its result on; its shape is that of its input.",
  "residual.normed":
    "Each row is centered and divided by its standard deviation, then scaled and shifted.",
  "residual.sum": "The input of the sublayer is added to its output.",
  "residual.out": "The input of the sublayer goes around it and is added to its output.",
  "attention.query": "The query of each position: what it looks for, in each head.",
  "attention.key": "The key of each position: what it can be found by, in each head.",
  "attention.value": "The value of each position: what is read there, in each head.",
  "attention.rotated_query": "Queries are turned by an angle that grows with the position.",
  "attention.rotated_key": "Keys are turned by an angle that grows with the position.",
  "attention.products":
    "Every query meets every key: their inner product says how well they match.",
  "attention.scores": "The products are divided by √d_k, so that they do not grow with the width.",
  "attention.bias": "A number for the distance between the two positions.",
  "attention.biased": "It is added to the scores.",
  "attention.masked":
    "Where reading is not allowed, the score becomes −∞: nothing reads the future.",
  "attention.weights": "The softmax turns each row into shares that sum to 1.",
  "attention.context": "Each position reads the values, each by its share.",
  "attention.joined": "The heads are put side by side.",
  "attention.out": "One more matrix mixes the heads.",
  "feed_forward.expanded": "Each position by itself is projected to more features.",
  "feed_forward.activated": "Only what is positive goes on, or what a gate lets through.",
  "feed_forward.out": "The features are projected back to the width of the model.",
  "network.memory": "The result of the encoder, which every decoder layer reads.",
  "network.states": "The result of the decoder, a row for each target position.",
  "network.logits": "Each state meets each piece of the vocabulary: a score for every next piece.",
  "network.log_probs":
    "The softmax makes probabilities of the scores. One piece is chosen and read at the next step.",
};

/** The sentence of a node; its operation where there is none. */
export function sentenceOf(node) {
  return SENTENCES[node.kind] ?? `${node.operation[0].toUpperCase()}${node.operation.slice(1)}.`;
}
