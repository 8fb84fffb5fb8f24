// SPDX-License-Identifier: Apache-2.0
// The same calls for whatever has data() and size(), for hvd.hpp, which includes it: an
// hvd::Buffer, a std::array, a span, a std::string. Vectors have calls of their own.
//
// A range is one dimension of size() elements. It is taken by reference and changed in place; an
// asynchronous call keeps the address that data() gave, so the range must not move or grow until
// the handle is done. Errors and threads are those of the calls on plain memory.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "hvd/allreduce.hpp"
#include "hvd/exchange.hpp"
#include "hvd/handle.hpp"
#include "hvd/types.hpp"

namespace hvd {

namespace internal {

template <class R>
using ElementOf = std::remove_pointer_t<decltype(std::declval<R&>().data())>;

template <class R, class = void>
struct IsRange : std::false_type {};
template <class R>
struct IsRange<R, std::void_t<ElementOf<R>, decltype(std::declval<R&>().size())>>
    : std::is_pointer<decltype(std::declval<R&>().data())> {};
template <class T, class A>
struct IsRange<std::vector<T, A>> : std::negation<std::is_same<A, std::allocator<T>>> {};

template <class R>
using IfRange = std::enable_if_t<IsRange<R>::value>;

}  // namespace internal

// Reduced over all ranks, in place.
template <class R, class = internal::IfRange<R>>
void allreduce(R& data, Op op = Op::kAverage, const Name& name = {}) {
  allreduce(data.data(), data.size(), op, name);
}
template <class R, class = internal::IfRange<R>>
void allreduce(R& data, const Name& name) {
  allreduce(data.data(), data.size(), Op::kAverage, name);
}
template <class R, class = internal::IfRange<R>>
void allreduce(R& data, const Options& options) {
  allreduce(data.data(), data.size(), options);
}
template <class R, class = internal::IfRange<R>>
Handle allreduce_async(R& data, Op op = Op::kAverage, const Name& name = {}) {
  return allreduce_async(data.data(), data.size(), op, name);
}
template <class R, class = internal::IfRange<R>>
Handle allreduce_async(R& data, const Name& name) {
  return allreduce_async(data.data(), data.size(), Op::kAverage, name);
}
template <class R, class = internal::IfRange<R>>
Handle allreduce_async(R& data, const Options& options) {
  return allreduce_async(data.data(), data.size(), options);
}

// Gives every rank what global rank `root` has.
template <class R, class = internal::IfRange<R>>
void broadcast(R& data, int root = 0, const Name& name = {}) {
  broadcast(data.data(), data.size(), root, name);
}
template <class R, class = internal::IfRange<R>>
void broadcast(R& data, int root, const Options& options) {
  broadcast(data.data(), data.size(), root, options);
}
template <class R, class = internal::IfRange<R>>
Handle broadcast_async(R& data, int root = 0, const Name& name = {}) {
  return broadcast_async(data.data(), data.size(), root, name);
}
template <class R, class = internal::IfRange<R>>
Handle broadcast_async(R& data, int root, const Options& options) {
  return broadcast_async(data.data(), data.size(), root, options);
}

// The ranges of all ranks one after the other, in rank order, as a std::vector; their lengths may
// differ.
template <class R, class = internal::IfRange<const R>>
auto allgather(const R& data, const Name& name = {}) {
  return allgather(data.data(), data.size(), 1, name);
}
template <class R, class = internal::IfRange<const R>>
auto allgather(const R& data, const Options& options) {
  return allgather(data.data(), data.size(), 1, options);
}

}  // namespace hvd
