// A forward pass of the lean policy over a cache of keys and values, in float32: prefill and decoding on CPUs.
//
// An operation of a small model takes less time than PyTorch takes to start it and to write out its result. Here everything
// between two matrix products happens while a row is in the processor's cache. The products of a small model are those of
// PyTorch's own library, by one thread; those of a large one with few rows are in rows.h, by several.

#include "kernels.h"
#include "rows.h"

extern "C" {

// Matrices are (out, in), row by row, with the norms' weights and attention's scale multiplied into them (`fold`).
struct Layer {
    const void* qkv;
    const float *qkv_bias, *q_norm, *k_norm;  // each may be null
    const void *out, *gate_up, *down;
};

// Of the matrices: float32 for PyTorch's library, or what rows.h takes.
// The embeddings of INT8 are in bfloat16.
enum Format : int64_t { LIBRARY, FLOAT32, BFLOAT16, INT8 };

struct Model {
    Matmul matmul;
    int64_t format, threads;
    int64_t hidden, heads, kv_heads, head_dim, mlp, vocab, layers;
    double eps;
    const void *embed, *head;
    const float *cos, *sin;  // (context, head_dim), sin with the sign of the rotation
    const Layer* layer;
};
}

namespace {

int64_t widest(const Model& m) { return std::max({m.hidden, m.mlp, m.heads * m.head_dim}); }

int64_t scratch_per_token(const Model& m) {
    return 2 * m.hidden + (2 * m.heads + 2 * m.kv_heads) * m.head_dim + 3 * m.mlp + widest(m);
}

// C (n, out) = X (n, in) W^T + add C, of a matrix W (out, in). scratch: n * in floats.
void product(const Model& m, Team& team, const float* x, const void* w, float* c, int64_t n, int64_t in, int64_t out, float add,
             float* scratch) {
    switch (m.format) {
        case FLOAT32: return multiply<Float32>(team, x, w, c, n, in, out, add, scratch);
        case BFLOAT16: return multiply<BFloat16>(team, x, w, c, n, in, out, add, scratch);
        case INT8: return multiply<Int8>(team, x, w, c, n, in, out, add, scratch);
        default: m.matmul.forward(x, static_cast<const float*>(w), c, n, in, out, add);
    }
}

template <class T>
void copy_row(const void* table, int64_t row, int64_t size, float* x) {
    for (int64_t i = 0; i < size; i++) x[i] = as_float(static_cast<const T*>(table)[row * size + i]);
}

struct Cache {
    float** layers;  // of each layer (2, slots, Hkv, span, d), keys and values
    int64_t slots, span;
};

// Norm and rotate the heads in `qkv` of one token, in place, and store its keys and values.
void write_keys(const Model& m, const Layer& w, const Cache& cache, float* table, float* qkv, int64_t slot, int64_t position) {
    const int64_t d = m.head_dim, rotated = m.heads + m.kv_heads;
    if (w.qkv_bias)
        for (int64_t i = 0; i < (rotated + m.kv_heads) * d; i++) qkv[i] += w.qkv_bias[i];
    for (int64_t h = 0; h < rotated; h++) {
        float* x = qkv + h * d;
        const float* norm = h < m.heads ? w.q_norm : w.k_norm;
        if (norm) rms_norm(x, norm, x, d, m.eps);
        rotate(x, m.cos + position * d, m.sin + position * d, d);
    }
    for (int64_t h = 0; h < 2 * m.kv_heads; h++) {
        const int64_t row = (h / m.kv_heads * cache.slots + slot) * m.kv_heads + h % m.kv_heads;
        std::memcpy(table + (row * cache.span + position) * d, qkv + (m.heads + h) * d, d * sizeof(float));
    }
}

// Attention of one head of one token. scores: position + 1 + LANES floats.
template <int D>
void attend(const Model& m, const Cache& cache, const float* table, const float* q, float* scores, float* out, int64_t h,
            int64_t slot, int64_t position) {
    const int64_t share = m.heads / m.kv_heads, values = cache.slots * m.kv_heads * cache.span * D;
    const float* keys = table + (slot * m.kv_heads + h / share) * cache.span * D;
    float lse;
    Head<D>{keys, keys + values, D, {0, 0, 0, position + 1}}.forward(q + h * D, scores, out + h * D, &lse);
}

// One block of tokens through all layers. Without `logits` the last layer ends with its keys and values: nothing reads more.
void run_block(const Model& m, Team& team, const Cache& cache, int64_t n, const int64_t* ids, const int64_t* slots,
               const int64_t* positions, float* scratch, float* logits) {
    const int64_t heads_d = m.heads * m.head_dim, width = heads_d + 2 * m.kv_heads * m.head_dim;
    float *x = scratch, *y = x + n * m.hidden, *qkv = y + n * m.hidden, *a = qkv + n * width, *both = a + n * heads_d,
          *product_of = both + n * 2 * m.mlp, *arranged = product_of + n * m.mlp, *scores = scratch + BLOCK * scratch_per_token(m);
    const int64_t room = cache.span + LANES;
    for (int64_t t = 0; t < n; t++)
        (m.format >= BFLOAT16 ? copy_row<uint16_t> : copy_row<float>)(m.embed, ids[t], m.hidden, x + t * m.hidden);
    for (int64_t i = 0; i < m.layers; i++) {
        const Layer& w = m.layer[i];
        float* table = cache.layers[i];
        for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
        product(m, team, y, w.qkv, qkv, n, m.hidden, width, 0, arranged);
        for (int64_t t = 0; t < n; t++) write_keys(m, w, cache, table, qkv + t * width, slots[t], positions[t]);
        if (!logits && i == m.layers - 1) return;
        with_head_size(m.head_dim, [&](auto d) {
            team.each(m.heads, [&](int64_t h) {
                for (int64_t t = 0; t < n; t++)
                    attend<d>(m, cache, table, qkv + t * width, scores + h * room, a + t * heads_d, h, slots[t], positions[t]);
            });
        });
        product(m, team, a, w.out, x, n, heads_d, m.hidden, 1, arranged);
        for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
        product(m, team, y, w.gate_up, both, n, m.hidden, 2 * m.mlp, 0, arranged);
        for (int64_t t = 0; t < n; t++) silu_product(both + t * 2 * m.mlp, product_of + t * m.mlp, m.mlp);
        product(m, team, product_of, w.down, x, n, m.mlp, m.hidden, 1, arranged);
    }
    for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
    product(m, team, y, m.head, logits, n, m.hidden, m.vocab, 0, arranged);
}

}  // namespace

extern "C" {

// Floats of working memory that `forward` needs.
int64_t scratch_floats(const Model* m, int64_t span) { return BLOCK * scratch_per_token(*m) + m->heads * (span + LANES); }

// n tokens, each in the slot of a row at a position of it; a row's tokens come in order. Writes their keys and values into the
// cache, and their logits (n, vocab) unless `logits` is null.
void forward(const Model* m, float** layers, int64_t slots_in_cache, int64_t span, int64_t n, const int64_t* ids,
             const int64_t* slots, const int64_t* positions, float* scratch, float* logits) {
    const Cache cache{layers, slots_in_cache, span};
    Team team(m->format == LIBRARY ? 1 : m->threads);
    for (int64_t t = 0; t < n; t += BLOCK) {
        float* const part = logits ? logits + t * m->vocab : nullptr;
        run_block(*m, team, cache, std::min(BLOCK, n - t), ids + t, slots + t, positions + t, scratch, part);
    }
}
}
