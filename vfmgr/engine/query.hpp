// SPDX-License-Identifier: Apache-2.0
// A question that is answered exactly once, immediately or later on another thread. Its answer has
// a type. A value; any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "api/types/problem.hpp"

namespace vfmgr {

// An outside client, one of many: each has a share of what they all wait for.
struct Client {
    std::string name{};                               // uid:0, token:<id>, cert:<name>
    std::shared_ptr<std::atomic<bool> const> gone{};  // its connection is gone; null: it never goes
};

template <class T>
class Query {
  public:
    using Answer = std::function<void(Result<T>)>;
    using Ask = std::function<void(Client const&, Answer)>;

    Query() = default;  // can't be asked; tl::expected needs it to convert a Result
    explicit Query(Ask ask) : ask_(std::move(ask)) {}
    // One that is answered at once.
    Query(T value)
        : ask_([value = std::move(value)](Client const&, Answer const& answer) { answer(value); }) {
    }

    // An answer that is dropped without a call means that an exception ended the work for it.
    void ask(Client const& client, Answer answer) const { ask_(client, std::move(answer)); }

    // Returns a question whose answer `next` makes from this one's, on the thread that answers
    // this one.
    template <class F>
    [[nodiscard]] auto then(F next) const
        -> Query<typename std::invoke_result_t<F, T>::value_type> {
        using Next = typename std::invoke_result_t<F, T>::value_type;
        return Query<Next>(
            [ask = ask_, next](Client const& client, typename Query<Next>::Answer answer) {
                ask(client, [next, answer = std::move(answer)](Result<T> result) {
                    answer(result ? next(std::move(*result)) : fail(std::move(result.error())));
                });
            });
    }

  private:
    Ask ask_;
};

}  // namespace vfmgr
