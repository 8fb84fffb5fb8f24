# SPDX-License-Identifier: Apache-2.0
"""horovod.data.data_loader_base, answered by hvd: what data loaders are made of."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any


class BaseDataLoader:
    """A data loader says in `_iterate` what its batches are, and in `__len__` how many."""

    def __len__(self) -> int:
        raise NotImplementedError

    def _iterate(self) -> Iterator[Any]:
        """The batches of one epoch."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)

    def _process_batch(self, batch: Any) -> Any:
        """A batch as the program gets it."""
        return batch


class _End:
    """The end of an epoch; or of all, with what the loader raised."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Ahead:
    """Batches that a thread reads before they are wanted, epoch after epoch, a certain number at
    most."""

    def __init__(self, loader: AsyncDataLoaderMixin) -> None:
        self._loader = loader
        self._most = loader.async_loader_queue_size
        self._read: deque[Any] = deque()
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="hvd data loader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closed:
                for batch in self._loader._iterate():
                    if not self._put(batch):
                        return
                self._put(_End())
        except Exception as error:  # the reader gets it
            self._put(_End(error))

    def _put(self, item: Any) -> bool:
        """False: it has been closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._read) < self._most)
            self._read.append(item)
            self._changed.notify_all()
            return not self._closed

    def take(self) -> Any:
        """The next one; waits for it. When it is closed: the end of an epoch."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._read)
            if self._closed:
                return _End()
            item = self._read.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Returns when the thread has ended, which the batch that it is at must be first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()


class AsyncDataLoaderMixin:
    """Put before a data loader's class, it has a thread read batches ahead, at most
    `async_loader_queue_size`; with 0 there is no thread. `debug_data_loader` prints each batch's
    number as it is handed out."""

    def __init__(self, async_loader_queue_size: int = 64, debug_data_loader: bool = False,
                 *args: Any, **kwargs: Any) -> None:
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._ahead: _Ahead | None = None
        super().__init__(*args, **kwargs)

    @property
    def started(self) -> bool:
        """Whether the thread is there."""
        return self._ahead is not None

    def close_async_loader(self) -> None:
        """Ends the thread; what it has read is dropped. Again: does nothing."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def _iterate(self) -> Iterator[Any]:
        return super()._iterate()  # type: ignore[misc, no-any-return]

    def _process_batch(self, batch: Any) -> Any:
        return super()._process_batch(batch)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._batches()):
            if self.debug_data_loader:
                print(f"batch {number} of {type(self).__name__}")
            yield self._process_batch(batch)

    def _batches(self) -> Iterator[Any]:
        if self.async_loader_queue_size <= 0:
            yield from self._iterate()
            return
        if self._ahead is None:
            self._ahead = _Ahead(self)
        ahead = self._ahead
        while not isinstance(item := ahead.take(), _End):
            yield item
        if item.error is not None:
            self.close_async_loader()  # the next epoch begins anew
            raise item.error
