// What happens at each kind of node, in one sentence.

const SENTENCES = {
  pieces:
    "The text is split into pieces of the vocabulary. The id of a piece is its row in the embedding table.",
  masks:
    "In a batch, shorter sentences are padded, and the padding is masked. In the decoder, so are all later positions.",
  choice:
    "The search chooses a piece by these probabilities. The decoder reads it at the next position, until </s> is chosen.",
  "embedding.tokens": "The row of each id in the learned embedding table, multiplied by √d_model.",
  "embedding.sum": "The vector of each position is added: the same numbers for every sentence.",
  "layer.in": "The output of the layer before; for the first layer, the embeddings.",
  "layer.out": "The output of the layer. Its shape is that of the layer's input.",
  "residual.normed":
    "Each row is centered and divided by its standard deviation, then scaled and shifted.",
  "residual.sum": "The input of the sublayer is added to its output.",
  "residual.out": "The input of the sublayer goes around it and is added to its output.",
  "attention.query": "The query of each position in each head: it is compared with all keys.",
  "attention.key": "The key of each position in each head: queries are compared with it.",
  "attention.value": "The value of each position in each head: attention sums these, weighted.",
  "attention.rotated_query": "Queries are turned by an angle that grows with the position.",
  "attention.rotated_key": "Keys are turned by an angle that grows with the position.",
  "attention.products":
    "The inner product of each query with each key: the larger, the better they match.",
  "attention.scores": "The products are divided by √d_k, so that they do not grow with the width.",
  "attention.bias": "A number for the distance between the two positions.",
  "attention.biased": "The bias is added to the scores.",
  "attention.masked":
    "Where attention is not allowed, the score becomes −∞, and the weight will be 0.",
  "attention.weights": "The softmax turns each row into weights that sum to 1.",
  "attention.context": "The sum of the values, weighted by the position's row.",
  "attention.joined": "The contexts of all heads are concatenated.",
  "attention.out": "The output projection W^O combines the heads.",
  "feed_forward.expanded":
    "Each position is projected, separately from the others, to more features.",
  "feed_forward.activated": "The activation function, or a gate, is applied to each feature.",
  "feed_forward.out": "The features are projected back to the width of the model.",
  "network.memory":
    "The output of the encoder, which the cross-attention of every decoder layer reads.",
  "network.states": "The output of the decoder: a row for each target position.",
  "network.logits":
    "The inner product of each state with the output vector of each piece: a score for every possible next piece.",
  "network.log_probs": "The softmax turns the scores into the probabilities of the next piece.",
};

const UNADDED = "no positions are added"; // the operation where `kind` alone would say the opposite

/** The sentence of a node; its operation where there is none. */
export function sentenceOf(node) {
  if (node.kind === "embedding.sum" && node.operation === UNADDED)
    return "Nothing is added here: attention itself takes positions into account, if at all.";
  return SENTENCES[node.kind] ?? `${node.operation[0].toUpperCase()}${node.operation.slice(1)}.`;
}
