"""Operations on images in columns, in terms of `xp`: packing windows, adding them back, pooling.

Source: CNTK book, section 2.5. Matrices such as x are (rows, T) in Fortran order, with an image per column; packed
matrices are (size, count T), with the windows of an image side by side. See image_geometry.py for windows and memory
order.
"""

from typing import Any

from acoustic.kernels.image_geometry import ImageWindows


class ArrayImageKernels:
    """Mixed into ArrayKernels, which has `xp`."""

    xp: Any
    packed_elements = 1 << 62  # number of elements to pack at a time

    def pack(self, windows: ImageWindows, x: Any, out: Any) -> None:
        """out (size, count T) = Pack(x), with a window per column. [eq. 2.165]"""
        xp = self.xp
        padded = xp.concatenate([x, xp.zeros((1, x.shape[1]), x.dtype)])  # row -1: what lies outside
        elements = padded[xp.asarray(windows.index.reshape(-1, order="F"))]
        out[...] = elements.reshape(out.shape, order="F")

    def unpack(self, windows: ImageWindows, packed: Any, out: Any) -> None:
        """out (rows, T) = Unpack(packed): the sum of all windows at their positions. [eq. 2.169]"""
        index = windows.index.reshape(-1, order="F")
        in_image = index >= 0
        out.fill(0)
        columns = packed.reshape((index.size, out.shape[1]), order="F")
        self.xp.add.at(out, self.xp.asarray(index[in_image]), columns[self.xp.asarray(in_image)])

    def rows_per_channel(self, windows: ImageWindows) -> Any:
        """The row of the matrix for each (element of a window in one channel, row of the pooled matrix)."""
        channels = windows.image.channels
        index = windows.index.reshape((channels, -1, windows.count), order="F")
        return self.xp.asarray(index.transpose(1, 0, 2).reshape((index.shape[1], -1), order="F"))

    def max_pool(self, windows: ImageWindows, x: Any, out: Any, winner: Any) -> None:
        """out = the largest element of each window and channel; winner = its number in the window, the first of equals.

        [eq. 2.170]
        """
        candidates = x[self.rows_per_channel(windows)]
        best = candidates.argmax(axis=0)
        winner[...] = best
        out[...] = self.xp.take_along_axis(candidates, best[None], axis=0)[0]

    def max_pool_gradient(self, windows: ImageWindows, grad: Any, winner: Any, out: Any) -> None:
        """out = the gradient at the winners, 0 elsewhere. [eq. 2.171]"""
        index = self.rows_per_channel(windows)
        rows = index[winner.astype(int), self.xp.arange(index.shape[1])[:, None]]
        out.fill(0)
        self.xp.add.at(out, (rows, self.xp.arange(out.shape[1])), grad)

    def max_pool_strips(self, windows: ImageWindows, products: Any, out: Any, winner: Any) -> None:
        """max_pool of images in strips: products (channels, height T width), row of an image fastest, then T."""
        self.max_pool(windows, self._from_strips(windows, products, out.shape[1]), out, winner)

    def max_pool_strips_gradient(self, windows: ImageWindows, grad: Any, winner: Any, products: Any) -> None:
        """The gradient of max_pool_strips, in strips."""
        width, height, channels = windows.image
        x = self.xp.empty((windows.image.size, grad.shape[1]), grad.dtype, order="F")
        self.max_pool_gradient(windows, grad, winner, x)
        swapped = x.reshape((channels, height, width, -1), order="F").swapaxes(2, 3)
        products[...] = swapped.reshape(products.shape, order="F")

    def _from_strips(self, windows: ImageWindows, products: Any, frames: int) -> Any:
        width, height, channels = windows.image
        swapped = products.reshape((channels, height, frames, width), order="F").swapaxes(2, 3)
        return swapped.reshape((windows.image.size, frames), order="F")

    def average_pool(self, windows: ImageWindows, x: Any, out: Any) -> None:
        """out = the mean of each window and channel.  [eq. 2.172]"""
        x[self.rows_per_channel(windows)].mean(axis=0, out=out)

    def average_pool_gradient(self, windows: ImageWindows, grad: Any, out: Any) -> None:
        """out = each window's gradient, divided evenly among its elements. [eq. 2.173]"""
        index = self.rows_per_channel(windows)
        out.fill(0)
        for places in index:
            self.xp.add.at(out, places, grad / len(index))
