// The layers of the lean policy in float32, forward and backward, over texts that may share prompts: training of small models on
// CPUs. Blocks of tokens run through all layers, so that an operation finds in the processor's cache what the last one wrote. A
// token sees keys of its block and of earlier ones: forward takes the blocks in order, backward in reverse order.

#include <vector>

#include "kernels.h"

extern "C" {

// Weights of a layer, or their gradients. Matrices are (out, in), row by row.
struct TrunkLayer {
    float *attn_norm, *qkv, *out, *mlp_norm, *gate_up, *down;
};

struct Trunk {
    Matmul matmul;
    int64_t hidden, heads, kv_heads, head_dim, mlp, layers;
    double eps;
    const float *cos, *sin;  // (context, head_dim), sin with the sign of the rotation
    float* norm;
    const TrunkLayer* layer;
};

// n flat tokens: the position of each, and what it sees, which comes before it.
struct Tokens {
    int64_t n, most_seen;
    const int64_t* positions;
    const Seen* seen;
};
}

namespace {

// What forward keeps of a layer, for each token: the residual stream before attention and before the MLP, the rotated queries,
// keys and values, the logarithm of each head's sum of scores, attention's result, and gate and up.
struct Kept {
    float *x, *middle, *qkv, *lse, *a, *both;
};

struct Sizes {
    int64_t hidden, heads, mlp, heads_d, width;
    explicit Sizes(const Trunk& m)
        : hidden(m.hidden), heads(m.heads), mlp(m.mlp), heads_d(heads * m.head_dim), width(heads_d + 2 * m.kv_heads * m.head_dim) {}
    int64_t kept_per_token() const { return 2 * hidden + width + heads + heads_d + 2 * mlp; }
    int64_t scratch_per_token() const { return 2 * hidden + width + 2 * heads_d + 4 * mlp; }

    // After the last layer there is only its `x`.
    Kept kept(float* memory, int64_t n, int64_t layer) const {
        float *x = memory + layer * n * kept_per_token(), *middle = x + n * hidden, *qkv = middle + n * hidden,
              *lse = qkv + n * width, *a = lse + n * heads, *both = a + n * heads_d;
        return {x, middle, qkv, lse, a, both};
    }
};

template <int D>
Head<D> head_of(const Trunk& m, const Sizes& s, const float* qkv, int64_t h, const Seen& seen) {
    const float* keys = qkv + (m.heads + h / (m.heads / m.kv_heads)) * D;
    return {keys, keys + m.kv_heads * D, s.width, seen};
}

// Attention of the tokens from `first`.
template <int D>
void attention_forward(const Trunk& m, const Tokens& tokens, int64_t first, int64_t n, const Kept& kept, float* scores) {
    const Sizes s(m);
    const float scale = 1.0f / std::sqrt(float(D));
    for (int64_t t = first; t < first + n; t++)
        for (int64_t h = 0; h < m.heads; h++) {
            float q[D];
            for (int j = 0; j < D; j++) q[j] = kept.qkv[t * s.width + h * D + j] * scale;
            const Head<D> head = head_of<D>(m, s, kept.qkv, h, tokens.seen[t]);
            head.forward(q, scores, kept.a + t * s.heads_d + h * D, kept.lse + t * m.heads + h);
        }
}

void forward_block(const Trunk& m, const Tokens& tokens, int64_t first, int64_t n, const float* embedded, float* memory,
                   float* hidden, float* scratch) {
    const Sizes s(m);
    const int64_t d = m.head_dim;
    float *y = scratch, *product = y + n * s.hidden, *scores = scratch + BLOCK * s.scratch_per_token();
    const auto norm = [&](const float* x, const float* weight, float* out) {
        for (int64_t t = 0; t < n; t++) rms_norm(x + t * s.hidden, weight, out + t * s.hidden, s.hidden, m.eps);
    };
    float* x = s.kept(memory, tokens.n, 0).x + first * s.hidden;
    std::copy_n(embedded + first * s.hidden, n * s.hidden, x);
    for (int64_t i = 0; i < m.layers; i++) {
        const TrunkLayer& w = m.layer[i];
        const Kept kept = s.kept(memory, tokens.n, i);
        float *middle = kept.middle + first * s.hidden, *both = kept.both + first * 2 * s.mlp, *a = kept.a + first * s.heads_d;
        norm(x, w.attn_norm, y);
        m.matmul.forward(y, w.qkv, kept.qkv + first * s.width, n, s.hidden, s.width, 0);
        for (int64_t t = first; t < first + n; t++)
            for (int64_t h = 0; h < m.heads + m.kv_heads; h++)
                rotate(kept.qkv + t * s.width + h * d, m.cos + tokens.positions[t] * d, m.sin + tokens.positions[t] * d, d);
        with_head_size(d, [&](auto size) { attention_forward<size>(m, tokens, first, n, kept, scores); });
        std::copy_n(x, n * s.hidden, middle);
        m.matmul.forward(a, w.out, middle, n, s.heads_d, s.hidden, 1);
        norm(middle, w.mlp_norm, y);
        m.matmul.forward(y, w.gate_up, both, n, s.hidden, 2 * s.mlp, 0);
        for (int64_t t = 0; t < n; t++) silu_product(both + t * 2 * s.mlp, product + t * s.mlp, s.mlp);
        x = s.kept(memory, tokens.n, i + 1).x + first * s.hidden;
        std::copy_n(middle, n * s.hidden, x);
        m.matmul.forward(product, w.down, x, n, s.mlp, s.hidden, 1);
    }
    norm(x, m.norm, hidden + first * s.hidden);
}

// Adds the gradient by x to dx, and by the weight to g_weight.
void norm_backward(const float* x, const float* weight, const float* dy, float* __restrict dx, float* __restrict g_weight,
                   int64_t size, double eps) {
    const float scale = rms_scale(x, size, eps);
    float dot = 0;
    for (int64_t i = 0; i < size; i++) dot += dy[i] * weight[i] * x[i];
    const float through = dot * scale * scale / size;
    for (int64_t i = 0; i < size; i++) g_weight[i] += dy[i] * x[i] * scale;
    for (int64_t i = 0; i < size; i++) dx[i] += (dy[i] * weight[i] - x[i] * through) * scale;
}

// From the gradient of silu(gate) * up to those of gate and up (size,), one after the other; also the product itself.
void silu_backward(const float* __restrict both, const float* __restrict g, float* __restrict g_both, float* __restrict product,
                   int64_t size) {
    for (int64_t i = 0; i < size; i++) {
        const float gate = both[i], up = both[size + i], s = sigmoid(gate);
        product[i] = gate * s * up;
        g_both[i] = g[i] * up * s * (1.0f + gate * (1.0f - s));
        g_both[size + i] = g[i] * gate * s;
    }
}

// The inverse of `rotate`, for gradients.
void rotate_backward(float* g, const float* cos, const float* sin, int64_t d) {
    const int64_t half = d / 2;
    for (int64_t i = 0; i < half; i++) {
        const float a = g[i], b = g[i + half];
        g[i] = a * cos[i] + b * sin[i + half];
        g[i + half] = b * cos[i + half] + a * sin[i];
    }
}

// Adds the gradients of the tokens' queries, and of all keys and values that they see, to d_qkv (tokens, width).
template <int D>
void attention_backward(const Trunk& m, const Tokens& tokens, const int64_t* at, int64_t n, const Kept& kept, const float* da,
                        float* d_qkv, float* scores) {
    const Sizes s(m);
    const float scale = 1.0f / std::sqrt(float(D));
    for (int64_t t = 0; t < n; t++)
        for (int64_t h = 0; h < m.heads; h++) {
            const Head<D> head = head_of<D>(m, s, kept.qkv, h, tokens.seen[at[t]]);
            float* const d_keys = d_qkv + (head.keys - kept.qkv);
            float q[D], dq[D] = {};
            for (int j = 0; j < D; j++) q[j] = kept.qkv[at[t] * s.width + h * D + j] * scale;
            const float *out = kept.a + at[t] * s.heads_d + h * D, *d_out = da + t * s.heads_d + h * D;
            head.backward(q, kept.lse[at[t] * m.heads + h], out, d_out, scores, dq, d_keys, d_keys + m.kv_heads * D);
            for (int j = 0; j < D; j++) d_qkv[at[t] * s.width + h * D + j] += dq[j] * scale;
        }
}

// Backward through all layers for the tokens `at` (n,). d_qkv: (layers, tokens, width), to which later blocks have added.
void backward_block(const Trunk& m, const Tokens& tokens, const int64_t* at, int64_t n, float* memory, float* d_qkv,
                    const float* d_hidden, float* d_embedded, const Trunk& g, float* scratch) {
    const Sizes s(m);
    const int64_t d = m.head_dim;
    float *dx = scratch, *y = dx + n * s.hidden, *g_qkv = y + n * s.hidden, *a = g_qkv + n * s.width, *da = a + n * s.heads_d,
          *product = da + n * s.heads_d, *d_product = product + n * s.mlp, *d_both = d_product + n * s.mlp,
          *scores = scratch + BLOCK * s.scratch_per_token();
    const auto norm_back = [&](const float* x, const float* weight, const float* dy, float* g_weight) {
        for (int64_t t = 0; t < n; t++)
            norm_backward(x + at[t] * s.hidden, weight, dy + t * s.hidden, dx + t * s.hidden, g_weight, s.hidden, m.eps);
    };
    const auto norm = [&](const float* x, const float* weight) {
        for (int64_t t = 0; t < n; t++) rms_norm(x + at[t] * s.hidden, weight, y + t * s.hidden, s.hidden, m.eps);
    };
    std::fill(dx, dx + n * s.hidden, 0.0f);
    for (int64_t t = 0; t < n; t++) std::copy_n(d_hidden + at[t] * s.hidden, s.hidden, y + t * s.hidden);
    norm_back(s.kept(memory, tokens.n, m.layers).x, m.norm, y, g.norm);
    for (int64_t i = m.layers - 1; i >= 0; i--) {
        const TrunkLayer &w = m.layer[i], &gw = g.layer[i];
        const Kept kept = s.kept(memory, tokens.n, i);
        m.matmul.by_input(dx, w.down, d_product, n, s.mlp, s.hidden);
        for (int64_t t = 0; t < n; t++)
            silu_backward(kept.both + at[t] * 2 * s.mlp, d_product + t * s.mlp, d_both + t * 2 * s.mlp, product + t * s.mlp, s.mlp);
        m.matmul.by_weight(dx, product, gw.down, n, s.mlp, s.hidden);
        norm(kept.middle, w.mlp_norm);
        m.matmul.by_weight(d_both, y, gw.gate_up, n, s.hidden, 2 * s.mlp);
        m.matmul.by_input(d_both, w.gate_up, y, n, s.hidden, 2 * s.mlp);
        norm_back(kept.middle, w.mlp_norm, y, gw.mlp_norm);
        for (int64_t t = 0; t < n; t++) std::copy_n(kept.a + at[t] * s.heads_d, s.heads_d, a + t * s.heads_d);
        m.matmul.by_weight(dx, a, gw.out, n, s.heads_d, s.hidden);
        m.matmul.by_input(dx, w.out, da, n, s.heads_d, s.hidden);
        float* const d_layer = d_qkv + i * tokens.n * s.width;
        with_head_size(d, [&](auto size) { attention_backward<size>(m, tokens, at, n, kept, da, d_layer, scores); });
        for (int64_t t = 0; t < n; t++) {
            const float *cos = m.cos + tokens.positions[at[t]] * d, *sin = m.sin + tokens.positions[at[t]] * d;
            std::copy_n(d_layer + at[t] * s.width, s.width, g_qkv + t * s.width);
            for (int64_t h = 0; h < m.heads + m.kv_heads; h++)
                rotate_backward(g_qkv + t * s.width + h * d, cos, sin, d);
        }
        norm(kept.x, w.attn_norm);
        m.matmul.by_weight(g_qkv, y, gw.qkv, n, s.hidden, s.width);
        m.matmul.by_input(g_qkv, w.qkv, y, n, s.hidden, s.width);
        norm_back(kept.x, w.attn_norm, y, gw.attn_norm);
    }
    for (int64_t t = 0; t < n; t++) std::copy_n(dx + t * s.hidden, s.hidden, d_embedded + at[t] * s.hidden);
}

// The tokens whose gradient may differ from 0: those with one of their own, and whatever they see. Where all replies of a group got
// the same reward, this is none of them.
std::vector<int64_t> alive(const Tokens& tokens, const float* d_hidden, int64_t size) {
    std::vector<char> lives(tokens.n);
    std::vector<int64_t> found;
    for (int64_t t = tokens.n - 1; t >= 0; t--) {
        for (int64_t i = 0; i < size && !lives[t]; i++) lives[t] = d_hidden[t * size + i] != 0;
        if (!lives[t]) continue;
        const Seen& seen = tokens.seen[t];
        std::fill(lives.begin() + seen.prompt, lives.begin() + seen.prompt_end, 1);
        std::fill(lives.begin() + seen.begin, lives.begin() + seen.end, 1);
    }
    for (int64_t t = 0; t < tokens.n; t++)
        if (lives[t]) found.push_back(t);
    return found;
}

}  // namespace

extern "C" {

int64_t kept_floats(const Trunk* m, int64_t n) { return n * (m->layers * Sizes(*m).kept_per_token() + m->hidden); }

int64_t trunk_scratch_floats(const Trunk* m, int64_t most_seen) {
    return BLOCK * Sizes(*m).scratch_per_token() + most_seen + LANES;
}

// From the embedded tokens (n, hidden) to their hidden states after the last norm. kept: for `trunk_backward`.
void trunk_forward(const Trunk* m, const Tokens* tokens, const float* embedded, float* kept, float* hidden, float* scratch) {
    for (int64_t t = 0; t < tokens->n; t += BLOCK)
        forward_block(*m, *tokens, t, std::min(BLOCK, tokens->n - t), embedded, kept, hidden, scratch);
}

// From the gradient by `hidden` to that by `embedded`, which holds zeros; adds those by the weights to g.
// d_qkv: (layers, n, width) zeros, for working.
void trunk_backward(const Trunk* m, const Tokens* tokens, float* kept, float* d_qkv, const float* d_hidden, float* d_embedded,
                    const Trunk* g, float* scratch) {
    const std::vector<int64_t> at = alive(*tokens, d_hidden, m->hidden);
    for (int64_t end = at.size(); end > 0; end -= BLOCK) {
        const int64_t first = std::max<int64_t>(0, end - BLOCK);
        backward_block(*m, *tokens, at.data() + first, end - first, kept, d_qkv, d_hidden, d_embedded, *g, scratch);
    }
}
}
