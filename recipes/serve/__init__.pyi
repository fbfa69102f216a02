from recipes.serve.job import ServeResult as ServeResult
from recipes.serve.job import serve as serve
from recipes.serve.limits import Limits as Limits
from recipes.serve.options import AccessOptions as AccessOptions
from recipes.serve.options import ServeOptions as ServeOptions
