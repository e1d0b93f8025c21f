"""Somebody's model: the stories point at its lines; it is never run."""


class Model:
    def forward(self, x, use_cache=True):
        # the branch that the stories complain of
        if x.sum() > 0:
            x = -x
        return x, use_cache

    def encode(self, x):
        return self.long(x) if x.shape[1] > 10 else self.short(x)
