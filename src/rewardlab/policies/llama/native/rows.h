// Products of a large matrix with few rows, by several threads. Every weight is read from memory once and used at once, so that
// memory sets the pace: a weight of two bytes is turned into a float in a register, and sums are in float32.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

using Floats = float __attribute__((vector_size(32)));
using Words = uint32_t __attribute__((vector_size(32)));
// Numbers that a kernel takes at once: inputs must be a multiple of it.
constexpr int64_t STRIDE = 16;
// Rows of a matrix that a thread takes at a time.
constexpr int64_t CHUNK = 32;
// Bytes that weights are fetched from memory before their turn: the processor alone fetches half as many a second.
constexpr int64_t AHEAD = 4096;

#include "int8.h"

// A format of weights: TOKENS rows of X share a weight in a register, and a row of a matrix has `row(in)` of its `type`.
struct Float32 {
    using type = float;
    static constexpr int64_t TOKENS = 4;
    static int64_t row(int64_t in) { return in; }
    static constexpr bool pairs = false;
    static void load(const float* w, Floats& a, Floats& b) {
        std::memcpy(&a, w, sizeof a);
        std::memcpy(&b, w + 8, sizeof b);
    }
};

// The upper half of a float. Two lie in a word: a gets those at even places, b those at odd ones.
struct BFloat16 {
    using type = uint16_t;
    static constexpr int64_t TOKENS = 4;
    static int64_t row(int64_t in) { return in; }
    static constexpr bool pairs = true;
    static void load(const uint16_t* w, Floats& a, Floats& b) {
        Words both;
        std::memcpy(&both, w, sizeof both);
        a = (Floats)(both << 16);
        b = (Floats)(both & 0xffff0000u);
    }
};

inline float as_float(float x) { return x; }
inline float as_float(uint16_t x) {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    float y;
    std::memcpy(&y, &bits, sizeof y);
    return y;
}

// x (size,) in the order in which `load` gives weights.
template <class W>
void arrange(W, const float* x, float* y, int64_t size) {
    for (int64_t i = 0; i < size; i += STRIDE)
        for (int64_t j = 0; j < STRIDE; j++) y[i + j] = x[i + (W::pairs ? j % 8 * 2 + j / 8 : j)];
}

// The products of a row of W with N rows of X, (N,).
template <int N, class W>
void dots(W, const typename W::type* w, const float* x, int64_t in, float* found) {
    Floats sums[N][2] = {};
    for (int64_t i = 0; i < in; i += STRIDE) {
        Floats a, b;
        W::load(w + i, a, b);
        __builtin_prefetch(w + i + AHEAD / sizeof *w);
        for (int t = 0; t < N; t++) {
            Floats first, second;
            std::memcpy(&first, x + t * in + i, sizeof first);
            std::memcpy(&second, x + t * in + i + 8, sizeof second);
            sums[t][0] += a * first;
            sums[t][1] += b * second;
        }
    }
    for (int t = 0; t < N; t++) {
        const Floats both = sums[t][0] + sums[t][1];
        found[t] = 0;
        for (int l = 0; l < 8; l++) found[t] += both[l];
    }
}

// Columns first..last of C (n, out) = X W^T + add C, for N rows of X. x: arranged.
template <int N, class W>
void columns(W, const typename W::type* w, const float* x, float* c, int64_t in, int64_t out, float add, int64_t first,
             int64_t last) {
    float found[N];
    for (int64_t o = first; o < last; o++) {
        dots<N>(W{}, w + o * W::row(in), x, in, found);
        for (int t = 0; t < N; t++) c[t * out + o] = found[t] + (add ? add * c[t * out + o] : 0);
    }
}

// Threads that share out the parts of one piece of work after another, and wait for the next by spinning: a token has a hundred
// pieces of some ten microseconds. They live as long as a forward pass, so that a process that forks has none.
class Team {
   public:
    explicit Team(int64_t threads) {
        for (int64_t i = 1; i < threads; i++) helpers.emplace_back([this] { help(); });
    }
    ~Team() {
        over.store(true);
        for (auto& helper : helpers) helper.join();
    }

    // f(part) for each part below `parts` (less than 2^16), by whoever is free.
    template <class F>
    void each(int64_t parts, const F& f) {
        if (helpers.empty()) {
            for (int64_t i = 0; i < parts; i++) f(i);
            return;
        }
        call = [](const void* g, int64_t i) { (*static_cast<const F*>(g))(i); };
        work = &f;
        finished.store(0, std::memory_order_relaxed);
        ticket.store(++piece << 32 | static_cast<uint64_t>(parts) << 16, std::memory_order_release);
        while (take()) {}
        for (int64_t idle = 0; finished.load(std::memory_order_acquire) < parts; idle++) rest(idle);
    }

   private:
    std::vector<std::thread> helpers;
    // the number of a piece of work, its parts, and the next part to be taken, in one word: who has taken a part of a piece may
    // read what to do, since the next piece is not put here before the part is done
    std::atomic<uint64_t> ticket{0};
    std::atomic<int64_t> finished{0};
    std::atomic<bool> over{false};
    uint64_t piece = 0;
    void (*call)(const void*, int64_t) = nullptr;
    const void* work = nullptr;

    bool take() {
        uint64_t seen = ticket.load(std::memory_order_acquire);
        do {
            if ((seen & 0xffff) >= (seen >> 16 & 0xffff)) return false;
        } while (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire));
        call(work, static_cast<int64_t>(seen & 0xffff));
        finished.fetch_add(1, std::memory_order_release);
        return true;
    }
    void help() {
        for (int64_t idle = 0; !over.load(std::memory_order_relaxed); idle++)
            if (take())
                idle = 0;
            else
                rest(idle);
    }
    static void rest(int64_t idle) {
        // another program may need the core
        if (idle > 4000) std::this_thread::yield();
#if defined(__x86_64__)
        else __builtin_ia32_pause();
#endif
    }
};

// `columns` for up to as many rows of X as W has TOKENS.
template <int N, class W>
void some(W, int64_t n, const typename W::type* w, const float* x, float* c, int64_t in, int64_t out, float add, int64_t first,
          int64_t last) {
    if (n == N) return columns<N>(W{}, w, x, c, in, out, add, first, last);
    if constexpr (N > 1) some<N - 1>(W{}, n, w, x, c, in, out, add, first, last);
}

// C (n, out) = X (n, in) W^T + add C. scratch: n * in floats.
template <class W>
void multiply(Team& team, const float* x, const void* matrix, float* c, int64_t n, int64_t in, int64_t out, float add,
              float* scratch) {
    const auto* w = static_cast<const typename W::type*>(matrix);
    for (int64_t t = 0; t < n; t++) arrange(W{}, x + t * in, scratch + t * in, in);
    team.each((out + CHUNK - 1) / CHUNK, [&](int64_t part) {
        const int64_t first = part * CHUNK, last = std::min(first + CHUNK, out);
        for (int64_t t = 0; t < n; t += W::TOKENS)
            some<W::TOKENS>(W{}, std::min(W::TOKENS, n - t), w, scratch + t * in, c + t * out, in, out, add, first, last);
    });
}
